package workload

import "fmt"

// Start is when the pods of a gang start. It takes one byte, because each of a million
// workloads that wait has one. Zero is as the queue has it.
type Start uint8

const (
	// StartEarly: each pod starts as it appears, once each pod set has one and the
	// ResourceQuotas of the namespace have room for the others.
	StartEarly Start = 1 + iota
	// StartWhole: no pod starts before all exist.
	StartWhole
)

// Starts are the words for a Start.
func Starts() []string { return []string{"early", "whole"} }

// String returns the word for it; empty for zero.
func (s Start) String() string {
	if words := Starts(); s >= StartEarly && int(s) <= len(words) {
		return words[s-1]
	}
	return ""
}

// ParseStart reads a word.
func ParseStart(text string) (Start, error) {
	for i, word := range Starts() {
		if word == text {
			return Start(i + 1), nil
		}
	}
	return 0, fmt.Errorf("%q: want %s or %s", text, StartEarly, StartWhole)
}

// MarshalText implements encoding.TextMarshaler.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Start) UnmarshalText(text []byte) (err error) {
	*s, err = ParseStart(string(text))
	return err
}
