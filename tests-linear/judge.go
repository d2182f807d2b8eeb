package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Bytes in a logical block, which holds one value repeatedly.
const blockBytes = 512

// The operations on the cells of two volumes.
type history struct {
	Name    string   `json:"name"`
	Initial []uint32 `json:"initial"`
	Steps   []step   `json:"steps"`
}

// An operation that takes effect between start and end or, if it is not certain, perhaps never.
type step struct {
	Start   int64    `json:"start"`
	End     int64    `json:"end"`
	Certain bool     `json:"certain"`
	Command int      `json:"command"`
	Read    *values  `json:"read"`
	Write   *values  `json:"write"`
	Compare *compare `json:"compare"`
	Copy    *copying `json:"copy"`
}

type values struct {
	At     int      `json:"at"`
	Values []uint32 `json:"values"`
}

type compare struct {
	At       int      `json:"at"`
	Expected []uint32 `json:"expected"`
	Values   []uint32 `json:"values"`
	// "done", "unknown", or the offset of the first byte that differs.
	Swap json.RawMessage `json:"swap"`
}

type copying struct {
	From  int `json:"from"`
	To    int `json:"to"`
	Count int `json:"count"`
}

// A run of cells.
type cells struct{ at, count int }

type verdict int

const (
	right verdict = iota
	wrong
	undecided
)

// Returns the cells that a step reads or writes.
func (s *step) cells() ([]cells, error) {
	switch {
	case s.Read != nil:
		return []cells{{s.Read.At, len(s.Read.Values)}}, nil
	case s.Write != nil:
		return []cells{{s.Write.At, len(s.Write.Values)}}, nil
	case s.Compare != nil:
		if len(s.Compare.Expected) != len(s.Compare.Values) {
			return nil, fmt.Errorf("command %d compares and writes unequal lengths", s.Command)
		}
		return []cells{{s.Compare.At, len(s.Compare.Values)}}, nil
	case s.Copy != nil:
		return []cells{{s.Copy.From, s.Copy.Count}, {s.Copy.To, s.Copy.Count}}, nil
	}
	return nil, fmt.Errorf("command %d has no known operation", s.Command)
}

// Checks a history. Linearizability is local, so each set of cells that are connected by steps is
// checked separately.
func judge(one history, limit time.Duration) (verdict, string, error) {
	parts, err := parts(one)
	if err != nil {
		return wrong, "", err
	}
	until := time.Now().Add(limit)
	result, why := right, ""
	for _, part := range parts {
		left := time.Until(until)
		if left <= 0 {
			return undecided, "the time limit ended before the last part", nil
		}
		switch porcupine.CheckOperationsTimeout(part.model(), part.operations(), left) {
		case porcupine.Illegal:
			return wrong, part.String(), nil
		case porcupine.Unknown:
			result, why = undecided, fmt.Sprintf("a part of %d steps takes too long", len(part.steps))
		}
	}
	return result, why, nil
}

// A set of cells that are connected by steps.
type part struct {
	initial string
	// The index of each cell in a state.
	place map[int]int
	steps []step
}

func parts(one history) ([]*part, error) {
	of := make([]int, len(one.Initial))
	for cell := range of {
		of[cell] = cell
	}
	find := func(cell int) int {
		for of[cell] != cell {
			of[cell] = of[of[cell]]
			cell = of[cell]
		}
		return cell
	}
	first := make([]int, len(one.Steps))
	for index := range one.Steps {
		ranges, err := one.Steps[index].cells()
		if err != nil {
			return nil, err
		}
		first[index] = ranges[0].at
		for _, run := range ranges {
			if run.count <= 0 || run.at < 0 || run.at+run.count > len(of) {
				return nil, fmt.Errorf("command %d is out of range", one.Steps[index].Command)
			}
			for cell := run.at; cell < run.at+run.count; cell++ {
				of[find(cell)] = find(first[index])
			}
		}
	}
	found := map[int]*part{}
	all := []*part{}
	for index, step := range one.Steps {
		root := find(first[index])
		if found[root] == nil {
			found[root] = &part{place: map[int]int{}}
			all = append(all, found[root])
		}
		found[root].steps = append(found[root].steps, step)
	}
	// In the order of cells, so that adjacent cells are adjacent in the state.
	for cell, value := range one.Initial {
		if part := found[find(cell)]; part != nil {
			part.place[cell] = len(part.place)
			part.initial += string(binary.LittleEndian.AppendUint32(nil, value))
		}
	}
	return all, nil
}

func (p *part) operations() []porcupine.Operation {
	all := make([]porcupine.Operation, 0, len(p.steps))
	for index := range p.steps {
		step := &p.steps[index]
		all = append(all, porcupine.Operation{Input: step, Call: step.Start, Return: step.End})
	}
	return all
}

// The model. A state holds the values of all cells. A step that is not certain has two outcomes.
func (p *part) model() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{p.initial} },
		Step: func(state, input, _ interface{}) []interface{} {
			before, step := state.(string), input.(*step)
			after, fits := p.take(before, step)
			next := []interface{}{}
			if fits {
				next = append(next, after)
			}
			if !step.Certain && (!fits || after != before) {
				next = append(next, before)
			}
			return next
		},
	}
	return model.ToModel()
}

// Returns the state after a step, and whether its answer is possible in the state before it.
func (p *part) take(state string, step *step) (string, bool) {
	held := func(at, count int) string {
		from := 4 * p.place[at]
		return state[from : from+4*count]
	}
	put := func(at int, bytes string) string {
		from := 4 * p.place[at]
		return state[:from] + bytes + state[from+len(bytes):]
	}
	switch {
	case step.Read != nil:
		return state, held(step.Read.At, len(step.Read.Values)) == bytesOf(step.Read.Values)
	case step.Write != nil:
		return put(step.Write.At, bytesOf(step.Write.Values)), true
	case step.Copy != nil:
		return put(step.Copy.To, held(step.Copy.From, step.Copy.Count)), true
	}
	found := held(step.Compare.At, len(step.Compare.Values))
	expected, brings := bytesOf(step.Compare.Expected), bytesOf(step.Compare.Values)
	switch swap := string(step.Compare.Swap); swap {
	case `"done"`, `"unknown"`:
		if found != expected {
			return state, false
		}
		return put(step.Compare.At, brings), true
	default:
		// If the cells hold the new values, this command may have written them itself, so it must
		// not report a miscompare.
		offset := fmt.Sprint(firstDifference(found, expected))
		return state, found != expected && offset == swap && found != brings
	}
}

func bytesOf(values []uint32) string {
	bytes := make([]byte, 0, 4*len(values))
	for _, value := range values {
		bytes = binary.LittleEndian.AppendUint32(bytes, value)
	}
	return string(bytes)
}

// Returns the first byte in which blocks with these values differ.
func firstDifference(one, other string) int {
	for at := range len(one) {
		if one[at] != other[at] {
			return at/4*blockBytes + at%4
		}
	}
	return -1
}

// Lists the steps in the order of their start times.
func (p *part) String() string {
	steps := append([]step{}, p.steps...)
	sort.SliceStable(steps, func(a, b int) bool { return steps[a].Start < steps[b].Start })
	var text strings.Builder
	fmt.Fprintf(&text, "  no order of %d steps:\n", len(steps))
	for _, step := range steps {
		line, err := json.Marshal(step)
		if err != nil {
			line = []byte(err.Error())
		}
		fmt.Fprintf(&text, "  %s\n", line)
	}
	return text.String()
}
