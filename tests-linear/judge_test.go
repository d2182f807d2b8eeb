package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Returns the verdict on a history of four cells that are 0 initially.
func verdictOf(t *testing.T, steps ...string) verdict {
	t.Helper()
	line := fmt.Sprintf(`{"name":"one","initial":[0,0,0,0],"steps":[%s]}`, strings.Join(steps, ","))
	all, err := judgeAll(strings.NewReader(line+"\n"), &strings.Builder{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case all.right == 1:
		return right
	case all.wrong == 1:
		return wrong
	}
	return undecided
}

func at(start, end int, certain bool, what string) string {
	return fmt.Sprintf(`{"start":%d,"end":%d,"certain":%t,"command":0,%s}`, start, end, certain, what)
}

func sure(start, end int, what string) string  { return at(start, end, true, what) }
func maybe(start, end int, what string) string { return at(start, end, false, what) }

func read(cell int, value int) string {
	return fmt.Sprintf(`"read":{"at":%d,"values":[%d]}`, cell, value)
}

func write(cell int, value int) string {
	return fmt.Sprintf(`"write":{"at":%d,"values":[%d]}`, cell, value)
}

func swap(cell, expected, value int, how string) string {
	return fmt.Sprintf(`"compare":{"at":%d,"expected":[%d],"values":[%d],"swap":%s}`,
		cell, expected, value, how)
}

func TestHistories(t *testing.T) {
	copying := `"copy":{"from":0,"to":2,"count":2}`
	both := `"read":{"at":2,"values":[1,0]}`
	cases := []struct {
		name  string
		want  verdict
		steps []string
	}{
		{"sequential operations", right, []string{sure(0, 1, write(0, 1)), sure(2, 3, read(0, 1))}},
		{"overlapping operations have either order", right,
			[]string{sure(0, 9, write(0, 1)), sure(1, 8, read(0, 0)), sure(2, 7, read(0, 1))}},
		{"a lost write", wrong, []string{sure(0, 1, write(0, 1)), sure(2, 3, read(0, 0))}},
		{"a read of an old value after a newer one", wrong,
			[]string{sure(0, 9, write(0, 1)), sure(1, 2, read(0, 1)), sure(3, 4, read(0, 0))}},
		{"two take one lock", wrong,
			[]string{sure(0, 9, swap(0, 0, 1, `"done"`)), sure(0, 9, swap(0, 0, 2, `"done"`))}},
		{"one takes the lock, and the other gets a miscompare", right,
			[]string{sure(0, 9, swap(0, 0, 1, `"done"`)), sure(0, 9, swap(0, 0, 2, "0"))}},
		{"a wrong miscompare offset", wrong,
			[]string{sure(0, 1, swap(0, 0, 256, `"done"`)), sure(2, 3, swap(0, 0, 2, "0"))}},
		{"a right miscompare offset", right,
			[]string{sure(0, 1, swap(0, 0, 256, `"done"`)), sure(2, 3, swap(0, 0, 2, "1"))}},
		{"a copy", right,
			[]string{sure(0, 1, write(0, 1)), sure(2, 3, copying), sure(4, 5, both)}},
		{"a copy of wrong data", wrong,
			[]string{sure(0, 1, write(0, 2)), sure(2, 3, copying), sure(4, 5, both)}},
		{"an unanswered write took effect", right,
			[]string{maybe(0, 5, write(0, 1)), sure(2, 3, read(0, 1)), sure(6, 7, read(0, 1))}},
		{"an unanswered write had no effect", right,
			[]string{maybe(0, 5, write(0, 1)), sure(6, 7, read(0, 0))}},
		{"an unanswered write takes effect after its end", wrong,
			[]string{maybe(0, 5, write(0, 1)), sure(6, 7, read(0, 0)), sure(8, 9, read(0, 1))}},
		{"the effect of an unanswered write disappears", wrong,
			[]string{maybe(0, 5, write(0, 1)), sure(1, 2, read(0, 1)), sure(3, 4, read(0, 0))}},
		{"a repeated lock whose first answer was lost succeeds", right,
			[]string{maybe(0, 5, swap(0, 0, 7, `"unknown"`)), sure(0, 9, swap(0, 0, 7, `"done"`)),
				sure(10, 11, read(0, 7))}},
		{"a repeated lock whose first answer was lost gets a false miscompare", wrong,
			[]string{maybe(0, 5, swap(0, 0, 7, `"unknown"`)), sure(6, 9, swap(0, 0, 7, "0")),
				sure(10, 11, read(0, 7))}},
		{"operations on other cells are independent", right,
			[]string{sure(0, 1, write(0, 1)), sure(0, 1, write(3, 5)), sure(2, 3, read(3, 5))}},
	}
	for _, one := range cases {
		t.Run(one.name, func(t *testing.T) {
			if got := verdictOf(t, one.steps...); got != one.want {
				t.Errorf("verdict %d, not %d", got, one.want)
			}
		})
	}
}

func TestInvalidHistoriesAreRefused(t *testing.T) {
	for _, line := range []string{
		`{"name":"one","initial":[0],"steps":[{"start":0,"end":1,"certain":true,"command":0}]}`,
		`{"name":"one","initial":[0],"steps":[` + sure(0, 1, write(1, 1)) + `]}`,
		`nonsense`,
	} {
		if _, err := judgeAll(strings.NewReader(line), &strings.Builder{}, time.Minute); err == nil {
			t.Errorf("%s was accepted", line)
		}
	}
}
