package bundle

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// An object ends by the words that were given for it, when they are true, or else
// by what its own controller reports.
func TestEnded(t *testing.T) {
	t.Parallel()
	const (
		rayJob = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: j, namespace: lab}\n"
		job    = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, namespace: lab}\n"
		pod    = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: lab}\n"
		thing  = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: lab}\n"
	)
	for name, c := range map[string]struct {
		done   []string
		object string
		want   End
		why    string
	}{
		"RayJob runs":             {nil, rayJob + "status: {jobDeploymentStatus: Running, jobStatus: RUNNING}", Lasts, ""},
		"RayJob succeeded":        {nil, rayJob + "status: {jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}", Succeeded, "RayJob lab/j is Complete, its job SUCCEEDED"},
		"RayJob stopped":          {nil, rayJob + "status: {jobDeploymentStatus: Complete, jobStatus: STOPPED}", Failed, "its job STOPPED"},
		"RayJob failed":           {nil, rayJob + "status: {jobDeploymentStatus: Failed, jobStatus: FAILED, reason: AppFailed, message: oom}", Failed, "FAILED: AppFailed: oom"},
		"RayJob that is refused":  {nil, rayJob + "status: {jobDeploymentStatus: ValidationFailed}", Failed, "ValidationFailed"},
		"Job complete":            {nil, job + "status: {conditions: [{type: Complete, status: 'True'}]}", Succeeded, "Job lab/j is Complete"},
		"Job not complete":        {nil, job + "status: {conditions: [{type: Complete, status: 'False'}]}", Lasts, ""},
		"Job failed":              {nil, job + "status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: m}]}", Failed, "BackoffLimitExceeded: m"},
		"Pod succeeded":           {nil, pod + "status: {phase: Succeeded}", Succeeded, "Pod lab/p is Succeeded"},
		"Pod failed":              {nil, pod + "status: {phase: Failed, message: evicted}", Failed, "Failed: evicted"},
		"a thing never ends":      {nil, thing + "status: {conditions: [{type: Complete, status: 'True'}]}", Lasts, ""},
		"a word that is true":     {[]string{"ready", " Complete"}, thing + "status: {conditions: [{type: Complete, status: 'True'}]}", Succeeded, "Thing lab/t is Complete"},
		"a word that is false":    {[]string{"Complete"}, thing + "status: {conditions: [{type: Complete, status: 'False'}]}", Lasts, ""},
		"a word that is unknown":  {[]string{"Complete"}, thing + "status: {conditions: [{type: Complete, status: Unknown}]}", Lasts, ""},
		"a part of a word":        {[]string{"Complete"}, thing + "status: {conditions: [{type: Incomplete, status: 'True'}]}", Lasts, ""},
		"a word of a RayJob":      {[]string{"RUNNING"}, rayJob + "status: {jobStatus: RUNNING}", Succeeded, "RayJob lab/j is RUNNING"},
		"a word of a Pod":         {[]string{"Running"}, pod + "status: {phase: Running}", Succeeded, "Pod lab/p is Running"},
		"another word, but fails": {[]string{"Ready"}, job + "status: {conditions: [{type: Failed, status: 'True'}]}", Failed, "is Failed"},
		"another word, complete":  {[]string{"Ready"}, job + "status: {conditions: [{type: Complete, status: 'True'}]}", Lasts, ""},
		"no status":               {[]string{"Ready"}, job, Lasts, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(c.object), &object); err != nil {
				t.Fatal(err)
			}
			got, why := Item{Done: c.done}.Ended(object)
			if got != c.want || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("%s: %d %q, want %d %q", name, got, why, c.want, c.why)
			}
		})
	}
}
