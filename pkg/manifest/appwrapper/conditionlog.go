package appwrapper

import (
	"time"
)

// entry is one condition of MCAD's log. The trailing dots of reasons are MCAD's.
type entry struct {
	kind, reason, message string
	at                    time.Time
}

// conditionsKept bounds the log: a gang that is evicted again and again would
// outgrow its object.
const conditionsKept = 48

const requeued = "PreemptionTriggered"

// noteRequeue notes each return to the queue in the log, with its cause where
// that was seen.
func noteRequeue(log []entry, v View) []entry {
	noted, cause := 0, "the gang was taken down and queued again"
	for _, e := range log {
		if e.reason == requeued {
			noted++
		}
		if e.kind == "PreemptCandidate" {
			cause = e.message
		}
	}
	for ; noted < v.Record.Attempt-1 && noted < conditionsKept; noted++ {
		log = append(log, entry{kind: "Backoff", reason: requeued, message: cause, at: v.Now})
	}
	return log
}

// extend appends the steps that the log of the current attempt lacks. A step
// that is there gets the present message.
func extend(log, steps []entry, now time.Time) []entry {
	next := 0
	for i, e := range log {
		if e.reason == requeued {
			next = i + 1
		}
	}
	for n, s := range steps {
		if s.kind == "Init" && next > 0 {
			continue // once in a life
		}
		found := -1
		for i := next; i < len(log); i++ {
			if log[i].kind == s.kind && log[i].reason == s.reason {
				found = i
			}
		}
		if found >= 0 {
			next = found + 1
			if n == len(steps)-1 && log[found].message != s.message {
				log[found].message = s.message
			}
			continue
		}
		if s.at.IsZero() {
			s.at = now
		}
		log = append(log, s)
		next = len(log)
	}
	if len(log) > conditionsKept {
		log = append(log[:1:1], log[len(log)-conditionsKept+1:]...)
	}
	return log
}

func readLog(status map[string]any) []entry {
	list, _ := status["conditions"].([]any)
	var log []entry
	for _, item := range list {
		c, _ := item.(map[string]any)
		at, err := time.Parse(time.RFC3339Nano, text(c, "lastTransitionMicroTime"))
		if err != nil || at.Year() < 2000 {
			continue // the schema's default, from before a controller looked
		}
		log = append(log, entry{text(c, "type"), text(c, "reason"), text(c, "message"), at})
	}
	return log
}

func writeLog(log []entry) []any {
	list := make([]any, len(log))
	for i, e := range log {
		at := micro(e.at)
		condition := map[string]any{"type": e.kind, "status": "True", "lastUpdateMicroTime": at, "lastTransitionMicroTime": at}
		if e.reason != "" {
			condition["reason"] = e.reason
		}
		if e.message != "" {
			condition["message"] = e.message
		}
		list[i] = condition
	}
	return list
}
