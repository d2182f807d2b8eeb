# shellcheck shell=bash
# Completion of holdfast: the program itself answers, with the names of the array's objects.
# shellcheck disable=SC1090 # It is what the program prints.
source <(holdfast completion bash)
