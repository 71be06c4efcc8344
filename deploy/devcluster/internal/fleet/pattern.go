package fleet

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// number is the place of a node's number: zeros in braces, with or without dots
// after them ("{000..}").
var number = regexp.MustCompile(`\{(0+)(\.\.)?\}`)

// pattern makes the names of a group's nodes.
type pattern struct {
	before, after string
	digits        int
	fixed         bool // fixed is a pattern without a number.
}

func parsePattern(name string) (pattern, error) {
	places := number.FindAllStringSubmatchIndex(name, -1)
	switch len(places) {
	case 0:
		if strings.ContainsAny(name, "{}") {
			return pattern{}, fmt.Errorf("name %q: the number must be zeros in braces, as in gpu-{000}", name)
		}
		if name == "" {
			return pattern{}, fmt.Errorf("name: must not be empty")
		}
		return pattern{before: name, fixed: true}, nil
	case 1:
		at := places[0]
		p := pattern{before: name[:at[0]], after: name[at[1]:], digits: at[3] - at[2]}
		if strings.ContainsAny(p.before+p.after, "{}") {
			return pattern{}, fmt.Errorf("name %q: has braces beside its number", name)
		}
		return p, nil
	default:
		return pattern{}, fmt.Errorf("name %q: has more than one number", name)
	}
}

// name returns the name of the node with number n.
func (p pattern) name(n int) string {
	if p.fixed {
		return p.before
	}
	digits := strconv.Itoa(n)
	return p.before + strings.Repeat("0", max(0, p.digits-len(digits))) + digits + p.after
}

// group returns the pattern without its number.
func (p pattern) group() string {
	if p.fixed {
		return p.before
	}
	return strings.Trim(strings.TrimRight(p.before, "-.")+p.after, "-.")
}
