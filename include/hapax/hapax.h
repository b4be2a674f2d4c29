// All of Hapax: include this.
#pragma once

#include "hapax/app.h"
#include "hapax/error.h"
#include "hapax/json.h"
#include "hapax/options.h"
#include "hapax/task.h"
#include "hapax/workflow.h"
