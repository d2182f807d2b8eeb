// Judges histories of hosts by porcupine, a checker of linearizability that is not ours.
//
//	tests-linear [--limit 60s] < HISTORIES
//
// HISTORIES are one a line, in JSON, as tests-peer and torture write them
// (tests-peer/src/linear/lines.rs). A history that is wrong is named, with its part that has no
// order. Ends with 0 if all that could be judged are linearizable, and these are at least half.
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
	limit := flag.Duration("limit", time.Minute, "how long one history is judged at most")
	flag.Parse()
	all, err := judgeAll(os.Stdin, os.Stdout, *limit)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests-linear:", err)
		os.Exit(2)
	}
	fmt.Printf("porcupine: %d histories of %d steps: %d linearizable, %d wrong, %d undecided\n",
		all.histories, all.steps, all.right, all.wrong, all.undecided)
	// Of a short history half may be too wide to search.
	if all.wrong > 0 || all.right == 0 || all.undecided > all.right {
		os.Exit(1)
	}
}

// Judges each line, and tells of what is not right.
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
