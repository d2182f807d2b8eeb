# shellcheck shell=bash
# Completion of holdfast: the program itself answers, with the names of the array's objects.
source <(holdfast completion bash)
