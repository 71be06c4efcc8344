package resource

import (
	"strconv"
	"strings"
)

// InBytes reports whether amounts of the resource are bytes.
func InBytes(name Name) bool {
	return name == Memory || name == EphemeralStorage || strings.HasPrefix(string(name), "hugepages-")
}

// Format prints an amount as people write it: CPU in cores ("1.5", "200m"),
// bytes with the largest suffix that divides them, binary ("16Gi") or decimal
// ("16G"), anything else as a plain number.
func Format(name Name, amount int64) string {
	switch {
	case name == CPU:
		return formatMilli(amount)
	case InBytes(name):
		return formatBytes(amount)
	}
	return strconv.FormatInt(amount, 10)
}

func formatMilli(milli int64) string {
	if milli%1000 == 0 {
		return strconv.FormatInt(milli/1000, 10)
	}
	if milli > 1000 && milli%100 == 0 {
		return strconv.FormatFloat(float64(milli)/1000, 'f', 1, 64)
	}
	return strconv.FormatInt(milli, 10) + "m"
}

func formatBytes(bytes int64) string {
	binary := scaled(bytes, 1024, []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"})
	decimal := scaled(bytes, 1000, []string{"", "k", "M", "G", "T", "P"})
	if len(decimal) < len(binary) {
		return decimal
	}
	return binary
}

// scaled divides by the base as often as that leaves no remainder.
func scaled(amount, base int64, suffixes []string) string {
	i := 0
	for amount != 0 && amount%base == 0 && i < len(suffixes)-1 {
		amount /= base
		i++
	}
	return strconv.FormatInt(amount, 10) + suffixes[i]
}
