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
// bytes with the largest binary suffix that divides them ("16Gi"), anything
// else as a plain number.
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
	suffixes := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}
	i := 0
	for bytes != 0 && bytes%1024 == 0 && i < len(suffixes)-1 {
		bytes /= 1024
		i++
	}
	return strconv.FormatInt(bytes, 10) + suffixes[i]
}
