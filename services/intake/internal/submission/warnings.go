package submission

import (
	"fmt"
	"strings"
)

// Bounds of the warnings of a submission; the first are kept.
const (
	maxWarnings     = 20
	maxWarningBytes = 1000
)

// boundWarnings bounds the number and length of the warnings of a submission.
func boundWarnings(warnings []string) []string {
	rest := len(warnings) - maxWarnings
	var kept []string
	for _, warning := range warnings[:min(len(warnings), maxWarnings)] {
		if len(warning) > maxWarningBytes {
			warning = strings.ToValidUTF8(warning[:maxWarningBytes], "") + "..."
		}
		kept = append(kept, warning)
	}
	if rest > 0 {
		kept = append(kept, fmt.Sprintf("and %d more warnings", rest))
	}
	return kept
}
