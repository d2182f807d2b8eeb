// Checks histories of hosts by porcupine, an independent linearizability checker.
//
//	tests-linear [--limit 60s] < HISTORIES
//
// HISTORIES has one history per line, in the JSON that tests-peer and torture write
// (tests-peer/src/linear/lines.rs). For each history that is not linearizable, the program prints
// its name and the part that has no valid order. Exits with 0 if no history is wrong, and at least
// half of them could be decided.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// Counts of a run.
type counts struct {
	histories, steps, right, wrong, undecided int
}

func main() {
	limit := flag.Duration("limit", time.Minute, "time limit for each history")
	flag.Parse()
	all, err := judgeAll(os.Stdin, os.Stdout, *limit)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests-linear:", err)
		os.Exit(2)
	}
	fmt.Printf("porcupine: %d histories of %d steps: %d linearizable, %d wrong, %d undecided\n",
		all.histories, all.steps, all.right, all.wrong, all.undecided)
	// Up to half of the histories may have too much concurrency to search.
	if all.wrong > 0 || all.right == 0 || all.undecided > all.right {
		os.Exit(1)
	}
}

// Checks each line, and prints histories that are not linearizable or undecided.
func judgeAll(from io.Reader, to io.Writer, limit time.Duration) (counts, error) {
	var all counts
	reader := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			var one history
			if err := json.Unmarshal(line, &one); err != nil {
				return all, fmt.Errorf("history %d: %w", all.histories, err)
			}
			verdict, why, err := judge(one, limit)
			if err != nil {
				return all, fmt.Errorf("%s: %w", one.Name, err)
			}
			all.histories++
			all.steps += len(one.Steps)
			switch verdict {
			case right:
				all.right++
			case wrong:
				all.wrong++
				fmt.Fprintf(to, "WRONG %s:\n%s\n", one.Name, why)
			case undecided:
				all.undecided++
				fmt.Fprintf(to, "undecided %s: %s\n", one.Name, why)
			}
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}
