# shellcheck shell=bash
# Completion of holdfast by the program itself, including the names of the array's objects.
# shellcheck disable=SC1090 # The program prints this script.
source <(holdfast completion bash)
