package resource

import (
	"fmt"
	"regexp"
)

// longestQuantity bounds the text of a quantity, in bytes.
const longestQuantity = 64

// bounded is a Kubernetes quantity of at most forty digits before and after the
// point and an exponent of at most two.
var bounded = regexp.MustCompile(`^[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

// Bounded returns an error unless text is a quantity that can be parsed, added
// and compared at a small cost. Kubernetes' own parser takes an exponent of nine
// digits, and writing out the digits of 1e999999999 takes the process down. Each
// quantity from outside passes here before it is parsed; that it is not negative
// and can be counted, Parse and kube.Amounts check.
func Bounded(text string) error {
	if len(text) > longestQuantity {
		return fmt.Errorf("%.20q... has %d characters; a quantity has at most %d", text, len(text), longestQuantity)
	}
	if !bounded.MatchString(text) {
		return fmt.Errorf(`%q is no quantity; want a number with a suffix if need be, such as "500m", "4" or "16Gi"`, text)
	}
	return nil
}
