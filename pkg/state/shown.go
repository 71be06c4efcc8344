package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// checkShown ends the turn of a gang that shows itself as pods: when its time is over, and
// without counting that as a failure when it could not be admitted whatever nodes came.
func (l *lifecycle) checkShown(e *entry, now time.Time) {
	p := e.Provisioning
	held := l.admission.HeldReason(&e.Workload) != nil
	barred := elapsed(now, p.Since, settleProvisioned) && l.admission.Barred(e.ID, p.Cluster) != ""
	switch {
	case held || barred:
		l.withdrawRequest(e, now)
		l.emitChanged(e, now)
		l.enqueue(e)
	case elapsed(now, p.ShownUntil(), 0), l.tooLong(e, now):
		why := fmt.Sprintf("%s were shown in cluster %s since %s, and its nodes did not hold all pods of the gang", requestCalled(p), p.Cluster, p.Since.UTC().Format(time.RFC3339))
		if lacks := l.admission.Reason(e.ID); lacks != nil {
			why += ": " + lacks.Message
		}
		l.requestFailed(e, why, now)
	}
}

// requestCalled is how reasons call a request for nodes.
func requestCalled(p *workload.Provisioning) string {
	if p.Placeholders() {
		return "placeholder pods " + p.Name
	}
	return "ProvisioningRequest " + p.Name
}
