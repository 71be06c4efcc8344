package scenario

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/workload"
)

// Queue is a queue, as in queue-manager's queues file.
type Queue struct {
	Name string `json:"name"`
	// Namespaces that it may use, by default one of its own name.
	Namespaces []string       `json:"namespaces,omitempty"`
	Strategy   string         `json:"strategy,omitempty"` // BestEffortFIFO if empty
	Rules      workload.Rules `json:"life,omitzero"`
}

// bookQueues returns the queues as the book takes them; without any there is the
// queue "default".
func (f *File) bookQueues() ([]book.Queue, error) {
	if len(f.Queues) == 0 {
		return []book.Queue{{Name: "default", Namespaces: []string{"default"}, Strategy: admission.BestEffortFIFO}}, nil
	}
	queues := make([]book.Queue, len(f.Queues))
	for i, q := range f.Queues {
		path := fmt.Sprintf("queues[%d]", i)
		switch {
		case q.Name == "":
			return nil, fault(path+".name", "is missing")
		case slices.ContainsFunc(f.Queues[:i], func(other Queue) bool { return other.Name == q.Name }):
			return nil, fault(path+".name", "%q is there twice", q.Name)
		}
		if len(q.Namespaces) == 0 {
			q.Namespaces = []string{q.Name}
		}
		switch q.Strategy {
		case "":
			q.Strategy = admission.BestEffortFIFO
		case admission.BestEffortFIFO, admission.StrictFIFO:
		default:
			return nil, fault(path+".strategy", "%q: want %s or %s", q.Strategy, admission.BestEffortFIFO, admission.StrictFIFO)
		}
		if err := q.Rules.Validate(); err != nil {
			return nil, fault(path+".life", "%w", err)
		}
		queues[i] = book.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy, Rules: q.Rules}
	}
	return queues, nil
}

func (f *File) queueNames() []string {
	if len(f.Queues) == 0 {
		return []string{"default"}
	}
	names := make([]string, len(f.Queues))
	for i, q := range f.Queues {
		names[i] = q.Name
	}
	return names
}
