// Reads secrets from files, and hides them in the list of processes.
#pragma once

#include <string>

namespace hapax {

// The first line of the file, trimmed. Throws CommandError if there is none.
std::string read_secret_file(const std::string& flag, const std::string& path);

// Overwrites tokens and passwords in the arguments of this process, which every user of the machine can read. Call it
// after the arguments were copied.
void hide_arguments(int argc, char** argv);

// Does the same with the environment, which child processes can read in /proc. This process keeps its variables. Call
// it before starting threads.
void hide_environment();

}  // namespace hapax
