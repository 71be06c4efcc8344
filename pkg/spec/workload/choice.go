package workload

import (
	"fmt"
	"slices"
	"strings"
)

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
	i, err := parseChoice(text, Starts())
	return Start(i), err
}

// MarshalText implements encoding.TextMarshaler.
func (s Start) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Start) UnmarshalText(text []byte) (err error) {
	*s, err = ParseStart(string(text))
	return err
}

// OnLoss is what is done when a gang that has started loses a pod. It takes one byte, as a
// Start does. Zero is as the queue has it.
type OnLoss uint8

const (
	// HealOnLoss: KubeRay's replacement gets the lost pod's place, or another one
	// that is proven and then reserved instead; the gang is evicted when there is
	// none, or when it is not whole again within its ready deadline.
	HealOnLoss OnLoss = 1 + iota
	// EvictOnLoss: the gang is torn down whole and queued again.
	EvictOnLoss
)

// OnLosses are the words for an OnLoss.
func OnLosses() []string { return []string{"heal", "evict"} }

// String returns the word for it; empty for zero.
func (o OnLoss) String() string {
	if words := OnLosses(); o >= HealOnLoss && int(o) <= len(words) {
		return words[o-1]
	}
	return ""
}

// ParseOnLoss reads a word.
func ParseOnLoss(text string) (OnLoss, error) {
	i, err := parseChoice(text, OnLosses())
	return OnLoss(i), err
}

// MarshalText implements encoding.TextMarshaler.
func (o OnLoss) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *OnLoss) UnmarshalText(text []byte) (err error) {
	*o, err = ParseOnLoss(string(text))
	return err
}

// parseChoice returns the number of a word among others, from 1.
func parseChoice(text string, words []string) (int, error) {
	if i := slices.Index(words, text); i >= 0 {
		return i + 1, nil
	}
	return 0, fmt.Errorf("%q: want %s", text, strings.Join(words, " or "))
}
