package sim

import "muster.dev/muster/pkg/state/decisionlog"

// sendAgain has the next decision send the commands that the stream lacks, and returns what is to be
// called once it is committed.
func (t *term) sendAgain() (resent []func()) {
	for _, found := range t.commandsFound {
		t.withheld = t.withheld || len(t.step.State.Withheld(found.Lacks)) > 0
		t.do(decisionlog.Input{Kind: decisionlog.ResendCommands, Subjects: t.step.State.CommandSubjects(found.Lacks)})
		if found.Committed != nil {
			resent = append(resent, found.Committed)
		}
	}
	t.commandsFound = nil
	return resent
}

// noteResent tells the relay that all commands that it distrusted are committed, once nothing is on
// its way to be written, unless some were withheld.
func (t *term) noteResent() {
	if len(t.decisions) > 0 {
		return
	}
	if !t.withheld {
		for _, committed := range t.resent {
			committed()
		}
	}
	t.resent, t.withheld = nil, false
}
