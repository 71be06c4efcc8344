package helm_test

import (
	"slices"
	"strings"
	"testing"
)

// The intake of a further cluster serves its objects and nothing else: it has the queues, the rights
// and the admission policies for that, and no HTTP API, whatever the values say.
func TestTheIntakeOfAMember(t *testing.T) {
	t.Parallel()
	values := modes()["member with kubectl"]
	values["http"] = map[string]any{"enabled": true, "tlsSecret": "api", "clientCA": "people"}
	objects := render(t, values)
	var arguments []string
	for _, argument := range containerOf(t, objects["Deployment "+namespace+"/"+release+"-intake"])["args"].([]any) {
		arguments = append(arguments, argument.(string))
	}
	for _, want := range []string{"--cluster=east", "--member-queues=research,serving", "--default-queue=research", "--kube-namespaces=team-a,team-b"} {
		if !slices.Contains(arguments, want) {
			t.Errorf("intake lacks the argument %s: %v", want, arguments)
		}
	}
	if slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "--http") }) {
		t.Errorf("the intake of a member has the HTTP API: %v", arguments)
	}
	for _, key := range []string{
		"RoleBinding team-a/" + namespace + "-" + release + "-intake-writes", "MutatingAdmissionPolicy /" + namespace + "-" + release + "-hold",
	} {
		if objects[key] == nil {
			t.Errorf("there is no %s", key)
		}
	}
	if objects["Service "+namespace+"/"+release+"-http"] != nil {
		t.Error("a member has the Service of the HTTP API")
	}
}
