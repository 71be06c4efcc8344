package scenario

import (
	"strings"
	"testing"
)

// A second document would be passed over, and a false expectation in it, too.
func TestOneScenarioInAFile(t *testing.T) {
	t.Parallel()
	one := "nodes: [{name: n, allocatable: {cpu: 1}}]\nsteps: [{say: nothing happens}]\n"
	for name, text := range map[string]string{"one": one, "one, with marks": "---\n" + one + "...\n"} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(text)); err != nil && strings.Contains(err.Error(), "another document") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if _, err := Parse([]byte(one + "---\n" + one)); err == nil || !strings.Contains(err.Error(), "another document begins") {
		t.Errorf("two documents: the error is %v, want it to say so", err)
	}
}
