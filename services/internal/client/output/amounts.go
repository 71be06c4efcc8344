package output

import (
	"fmt"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/spec/resource"
)

// atLeast writes an amount of which there is no less, such as what is free; atMost one of
// which there is no more, such as what is used. Bytes that need five digits or more are
// rounded to a unit that needs fewer; data has the exact amount.
func atLeast(name resource.Name, amount int64) string { return rounded(name, amount, false) }

func atMost(name resource.Name, amount int64) string { return rounded(name, amount, true) }

// mostDigits is how many digits people read at a glance.
const mostDigits = 4

func rounded(name resource.Name, amount int64, up bool) string {
	exact := resource.Format(name, amount)
	if !resource.InBytes(name) || amount <= 0 || len(strings.TrimRight(exact, "kKMGTPi")) <= mostDigits {
		return exact
	}
	unit, suffix := int64(1), ""
	for _, next := range []string{"Ki", "Mi", "Gi", "Ti", "Pi"} {
		if amount < unit<<10*10 {
			break
		}
		unit, suffix = unit<<10, next
	}
	whole := amount / unit
	if up && amount%unit != 0 {
		whole++
	}
	return strconv.FormatInt(whole, 10) + suffix
}

// amounts writes all amounts of a list as resource.List does.
func amounts(l resource.List, write func(resource.Name, int64) string) string {
	var parts []string
	for _, name := range l.Names() {
		if l[name] != 0 {
			parts = append(parts, fmt.Sprintf("%s %s", name, write(name, l[name])))
		}
	}
	if len(parts) == 0 {
		return l.String()
	}
	return strings.Join(parts, ", ")
}
