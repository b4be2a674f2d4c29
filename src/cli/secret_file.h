// Secrets that come from files, and those that must not be seen in the list of processes.
#pragma once

#include <string>

namespace hapax {

// The first line of the file, without blanks around it. Throws CommandError if there is none.
std::string read_secret_file(const std::string& flag, const std::string& path);

// Overwrites tokens and passwords where everybody on the machine can read them: in the arguments of this process. To be
// called after the arguments were copied.
void hide_arguments(int argc, char** argv);

// Does the same with the environment, which the programs that this process starts can read in /proc. Its variables are
// still there for this process. Before there are threads.
void hide_environment();

}  // namespace hapax
