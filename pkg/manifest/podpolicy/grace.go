package podpolicy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	sigsjson "sigs.k8s.io/json"
)

// graces are the fields that say how long a pod, or a container of it, may take to
// end. A pod holds its place for so long after its deletion.
var graces = []string{"terminationGracePeriodSeconds"}

// CheckGrace refuses a manifest, as JSON, in which a pod may take longer than most to
// end. It looks at every object, whatever the policy's mode: pods may be described
// in kinds that Muster does not read.
func CheckGrace(most time.Duration, manifest json.RawMessage) error {
	if len(manifest) == 0 {
		return nil
	}
	var tree any
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(manifest, &tree); err != nil {
		return fmt.Errorf("the manifest cannot be read: %w; write it as JSON", err)
	}
	return checkGrace(most, "", tree)
}

func checkGrace(most time.Duration, where string, node any) error {
	switch n := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			at := strings.TrimPrefix(where+"."+key, ".")
			if slices.Contains(graces, key) {
				seconds, err := strconv.ParseInt(fmt.Sprint(n[key]), 10, 64)
				if n[key] != nil && (err != nil || seconds < 0 || seconds > int64(most/time.Second)) {
					return fmt.Errorf("%s: is %v, but the queue allows its pods %d s at most to end (its limit of checkpointGrace); ask for that or less",
						at, n[key], int64(most/time.Second))
				}
			}
			if err := checkGrace(most, at, n[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, item := range n {
			if err := checkGrace(most, fmt.Sprintf("%s[%d]", where, i), item); err != nil {
				return err
			}
		}
	}
	return nil
}
