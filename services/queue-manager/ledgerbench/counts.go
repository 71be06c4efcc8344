package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// counts are ascending numbers of workloads, separated by commas on the command line.
type counts []int

func (c counts) String() string {
	var texts []string
	for _, count := range c {
		texts = append(texts, strconv.Itoa(count))
	}
	return strings.Join(texts, ",")
}

// Set reads the counts of a flag.
func (c *counts) Set(text string) error {
	*c = nil
	for part := range strings.SplitSeq(text, ",") {
		count, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || count < 0 {
			return fmt.Errorf("count %q: want a whole number that is not negative, such as 100000", part)
		}
		*c = append(*c, count)
	}
	if !slices.IsSorted(*c) {
		return fmt.Errorf("counts %q: want them in ascending order", text)
	}
	return nil
}
