package quota

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
)

// Periods of a budget, of UTC; a week begins on Monday.
const (
	Day   = "Day"
	Week  = "Week"
	Month = "Month"
)

// Actions when a budget is used up.
const (
	BudgetWarns = "Warn"
	BudgetHolds = "Hold"
)

// Budget bounds what a queue uses in a period: a resource times hours. It is checked now and
// then, and what runs goes on, so a queue may use more.
type Budget struct {
	Name  string `json:"name"`
	Queue string `json:"queue"`
	// Namespace of the queue; empty for all of its namespaces.
	Namespace string        `json:"queueNamespace,omitempty"`
	Resource  resource.Name `json:"resource"`
	// Hours of a unit of the resource: a device, a core, a gibibyte.
	Hours  int64  `json:"hours"`
	Period string `json:"period"`
	Action string `json:"action"`
}

// PeriodAt returns the period in which a time is.
func (b *Budget) PeriodAt(t time.Time) (begin, end time.Time) {
	t = t.UTC()
	begin = time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	switch b.Period {
	case Week:
		begin = begin.AddDate(0, 0, -(int(begin.Weekday())+6)%7)
		return begin, begin.AddDate(0, 0, 7)
	case Month:
		begin = begin.AddDate(0, 0, 1-begin.Day())
		return begin, begin.AddDate(0, 1, 0)
	}
	return begin, begin.AddDate(0, 0, 1)
}

// Stop is the hold of the budget's queue until the end of a period.
func (b *Budget) Stop(used int64, since, until time.Time) BudgetStop {
	return BudgetStop{
		Name: b.Name, Queue: b.Queue, Namespace: b.Namespace, Resource: b.Resource, Hours: b.Hours, Used: used, Since: since.UTC(), Until: until.UTC(),
	}
}

// BudgetStop holds a queue whose budget is used up: nothing of it is admitted, and what was
// admitted goes on. queue-manager makes and ends it; no person does.
type BudgetStop struct {
	Name      string        `json:"name"` // of the budget
	Queue     string        `json:"queue"`
	Namespace string        `json:"queueNamespace,omitempty"`
	Resource  resource.Name `json:"resource"`
	Hours     int64         `json:"hours"`
	Used      int64         `json:"used"`
	Since     time.Time     `json:"since"`
	Until     time.Time     `json:"until"`
}

// Message reports that the budget is used up, and until when.
func (h *BudgetStop) Message() string {
	return fmt.Sprintf("budget of queue %s: used %s of %s %s until %s", h.Queue, thousands(h.Used), thousands(h.Hours), unitHours(h.Resource), h.Until.UTC().Format(time.DateOnly))
}

// unitHours is what the hours of a budget are of.
func unitHours(name resource.Name) string {
	switch {
	case name == resource.CPU:
		return "core-hours"
	case resource.InBytes(name):
		return "GiB-hours of " + string(name)
	case strings.HasSuffix(string(name), "/gpu"):
		return "GPU-hours"
	}
	return "hours of " + string(name)
}

// thousands writes a number with commas.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// BudgetStops returns those of the policy. They are not to be changed.
func (t *Tree) BudgetStops() []BudgetStop { return t.config.BudgetHolds }

// EndBudgetStops ends the holds whose periods are over at the time of a decision, whether or not
// the configuration still has them: its change may be refused. It reports whether one ended.
func (t *Tree) EndBudgetStops(now time.Time) (ended bool) {
	if len(t.config.BudgetHolds) == 0 || !now.After(t.budgetsAt) {
		return false
	}
	for i := range t.config.BudgetHolds {
		until := t.config.BudgetHolds[i].Until
		ended = ended || until.After(t.budgetsAt) && !until.After(now)
	}
	t.budgetsAt = now
	return ended
}

// BudgetStoppedBy returns the hold of a queue in a namespace whose budget is used up; nil for none.
func (t *Tree) BudgetStoppedBy(namespace, queue string) *BudgetStop {
	for i := range t.config.BudgetHolds {
		h := &t.config.BudgetHolds[i]
		if h.Queue == queue && (h.Namespace == "" || h.Namespace == namespace) && h.Until.After(t.budgetsAt) {
			return h
		}
	}
	return nil
}

// Bounds of budgets.
const (
	maxBudgets     = 200
	maxBudgetHours = 1_000_000_000
)

func (v *validation) budgets(c *Config) {
	if len(c.Budgets) > maxBudgets {
		v.faults.Add("budgets", "has %d entries; want at most %d", len(c.Budgets), maxBudgets)
	}
	seen := map[string]string{}
	for i, b := range c.Budgets {
		path := fault.Index("budgets", i)
		v.clusterName(path, b.Name, seen)
		if b.Queue == "" {
			v.faults.Add(path+".queue", "is missing; want the name of a queue")
		}
		v.line(path+".queue", b.Queue, maxSelectorText)
		v.line(path+".queueNamespace", b.Namespace, maxSelectorText)
		if b.Resource == "" {
			v.faults.Add(path+".resource", "is missing; want a resource, such as nvidia.com/gpu")
		}
		v.line(path+".resource", string(b.Resource), maxSelectorText)
		if b.Hours < 1 || b.Hours > maxBudgetHours {
			v.faults.Add(path+".hours", "%d: want 1 to %d", b.Hours, maxBudgetHours)
		}
		for _, of := range []struct {
			field, value string
			allowed      []string
		}{{"period", b.Period, []string{Day, Week, Month}}, {"action", b.Action, []string{BudgetWarns, BudgetHolds}}} {
			if of.value == "" {
				v.faults.Add(path+"."+of.field, "is missing; want one of %s", strings.Join(of.allowed, ", "))
			} else {
				v.oneOf(path+"."+of.field, of.value, of.allowed...)
			}
		}
	}
	held := map[string]string{}
	for i, h := range c.BudgetHolds {
		path := fault.Index("budgetHolds", i)
		v.clusterName(path, h.Name, held)
		if h.Queue == "" || !h.Since.Before(h.Until) {
			v.faults.Add(path, "want a queue, and until after since; queue-manager makes these")
		}
	}
}
