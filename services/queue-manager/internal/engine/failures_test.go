package engine

import (
	"errors"
	"testing"
	"time"
)

// TestTermsThatFail: a process is not ready once its terms fail one after the other, whether
// they came to decide or not; until one lasts, is over in order, or another process leads.
func TestTermsThatFail(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	fails := func(t *Terms) { t.begun(false); t.ended(errors.New("refused")) }
	early := func(t *Terms) { t.ended(errors.New("refused")) }
	over := func(t *Terms) { t.begun(false); t.ended(nil) }
	leads := func(t *Terms) { t.begun(false) }
	follows := func(t *Terms) { t.begun(true) }
	later := func(*Terms) { now = now.Add(longTerm + time.Second) }
	for _, c := range []struct {
		name    string
		happens []func(*Terms)
		failing bool
	}{
		{"nothing yet", nil, false},
		{"one failure", []func(*Terms){fails, leads}, false},
		{"one after the other", []func(*Terms){fails, fails, fails}, true},
		{"before they decide", []func(*Terms){early, early, early}, true},
		{"the next one has just begun", []func(*Terms){fails, fails, fails, leads}, true},
		{"the next one lasts", []func(*Terms){fails, fails, fails, leads, later}, false},
		{"it stands by", []func(*Terms){fails, fails, fails, follows}, false},
		{"it leads again and fails", []func(*Terms){fails, fails, fails, follows, early}, true},
		{"it stood by for long between them", []func(*Terms){early, early, early, follows, later, leads}, false},
		{"a term was over between them", []func(*Terms){fails, fails, over, fails}, false},
		{"a long one failed between them", []func(*Terms){fails, fails, leads, later, early, fails}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			terms := NewTerms()
			terms.now = func() time.Time { return now }
			for _, happens := range c.happens {
				happens(terms)
			}
			if err := terms.Failing(); (err != nil) != c.failing {
				t.Errorf("it is failing with %v, want %t", err, c.failing)
			}
		})
	}
}
