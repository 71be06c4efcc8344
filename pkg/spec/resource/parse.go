package resource

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
)

// quantity is Kubernetes' notation: a decimal number and a suffix or exponent.
// The bounds keep a number like 1e1000000000 from being written out.
var quantity = regexp.MustCompile(`^([0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?$`)

// Parse reads an amount of a resource as Kubernetes writes quantities ("500m",
// "4", "16Gi", "1e3"), rounded up to the resource's unit: millicores of CPU,
// units of everything else. Negative amounts, those beyond int64, and parts of
// what comes in whole pieces are refused.
func Parse(name Name, text string) (int64, error) {
	parts := quantity.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf(`%q is no amount of %s: want a number that is not negative, with a suffix if need be, such as "500m", "4" or "16Gi"`, text, name)
	}
	value, _ := new(big.Rat).SetString(parts[1]) // the pattern has made sure that it is a number
	value.Mul(value, factor(parts[2], parts[3]))
	if name == CPU {
		value.Mul(value, big.NewRat(1000, 1))
	}
	rounded, remainder := new(big.Int).QuoRem(value.Num(), value.Denom(), new(big.Int))
	if remainder.Sign() > 0 {
		if Whole(name) {
			return 0, fmt.Errorf("%s: %q is not a whole number; want whole ones, such as 1", name, text)
		}
		rounded.Add(rounded, big.NewInt(1))
	}
	if !rounded.IsInt64() || rounded.Int64() == math.MaxInt64 {
		return 0, fmt.Errorf("%q is more %s than can be counted", text, name)
	}
	return rounded.Int64(), nil
}

// factor is what a suffix or an exponent multiplies by.
func factor(suffix, exponent string) *big.Rat {
	power := func(base, n int64) *big.Rat {
		whole := new(big.Int).Exp(big.NewInt(base), big.NewInt(max(n, -n)), nil)
		if n < 0 {
			return new(big.Rat).SetFrac(big.NewInt(1), whole)
		}
		return new(big.Rat).SetInt(whole)
	}
	if exponent != "" {
		n, _ := strconv.ParseInt(exponent, 10, 64) // two digits
		return power(10, n)
	}
	decimal := map[string]int64{"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
	binary := map[string]int64{"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
	if n, ok := binary[suffix]; ok {
		return power(1024, n)
	}
	return power(1000, decimal[suffix])
}
