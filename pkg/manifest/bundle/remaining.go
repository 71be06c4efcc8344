package bundle

import (
	"encoding/json"
	"math"
)

// Remaining returns how many pods an object, as the API server has it, still needs of its pod set,
// once that is fewer than were submitted: of a Job, as Kueue counts reclaimable pods, no more than
// the completions that are left, and none of a Pod that has succeeded. Nil as long as it needs all,
// and of other kinds, whose controllers replace pods that end.
func (i Item) Remaining(object map[string]any) map[string]int {
	if len(i.Templates) != 1 {
		return nil
	}
	spec, _ := object["spec"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	left, all := 0, 1
	switch id := identityOf(object); {
	case id.APIVersion == "batch/v1" && id.Kind == "Job":
		submitted, err := parse(i.Object)
		if err != nil {
			return nil
		}
		all = atOnce(child(submitted, "spec"))
		parallelism := whole(spec["parallelism"], 1)
		left = whole(spec["completions"], parallelism) - whole(status["succeeded"], 0)
	case id.APIVersion == "v1" && id.Kind == "Pod" && text(status, "phase") == "Succeeded":
	default:
		return nil
	}
	if left >= all {
		return nil
	}
	return map[string]int{i.Templates[0].PodSet: max(0, left)}
}

// atOnce is how many pods of a Job run at once.
func atOnce(spec map[string]any) int {
	return min(whole(spec["parallelism"], 1), whole(spec["completions"], math.MaxInt32))
}

// whole reads a number that is not negative; otherwise is that of anything else.
func whole(number any, otherwise int) int {
	var n float64
	switch number := number.(type) {
	case int64:
		n = float64(number)
	case float64:
		n = number
	case json.Number:
		parsed, err := number.Float64()
		if err != nil {
			return otherwise
		}
		n = parsed
	default:
		return otherwise
	}
	if n < 0 || n > math.MaxInt32 || n != math.Trunc(n) {
		return otherwise
	}
	return int(n)
}
