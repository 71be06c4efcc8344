package helm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestShadow: the shadow is of the next release, has the login that it is given, and neither
// NATS nor a token of Kubernetes. It is off by default.
func TestShadow(t *testing.T) {
	t.Parallel()
	const shadow = namespace + "/" + release + "-shadow"
	for key := range render(t, modes()["defaults"]) {
		if strings.Contains(key, shadow) {
			t.Errorf("without having been enabled there is %s", key)
		}
	}
	objects := render(t, map[string]any{"shadow": map[string]any{"enabled": true, "tag": "v9.9", "databaseSecret": "looks-only"}})
	deployment := objects["Deployment "+shadow]
	container := containerOf(t, deployment)
	if image := fmt.Sprint(container["image"]); !strings.HasSuffix(image, ":v9.9") {
		t.Errorf("the shadow has the image %s, want that of the next release", image)
	}
	if command := fmt.Sprint(container["command"]); command != "[queue-manager shadow]" {
		t.Errorf("the shadow runs %s", command)
	}
	if text := fmt.Sprint(container["args"], container["env"], container["volumeMounts"]); strings.Contains(strings.ToLower(text), "nats") {
		t.Errorf("the shadow has settings of NATS: %s", text)
	}
	if !slices.Contains(container["args"].([]any), any("--database-url-file=/etc/muster/database/url")) || !strings.Contains(fmt.Sprint(deployment.Object), "secretName:looks-only") {
		t.Errorf("the shadow lacks its login: %v", deployment.Object)
	}
	policy := fmt.Sprint(objects["NetworkPolicy "+shadow].Object["spec"])
	if !strings.Contains(policy, "port:5432") || strings.Contains(policy, "port:4222") {
		t.Errorf("the shadow reaches %s, want Postgres alone", policy)
	}
	without := map[string]any{"shadow": nil, "trial": map[string]any{"enabled": true}} // as in the values of an earlier release that are reused
	for _, key := range []string{"admissionFairSharing", "admissionChecks", "provisioningRequestConfigs", "topologies", "clusters", "reservations", "budgets", "queueHolds", "clusterQueueHolds", "clusterCordons"} {
		without[key] = nil
	}
	for key := range render(t, without) {
		if strings.Contains(key, shadow) {
			t.Errorf("with the values of an earlier release there is %s", key)
		}
	}
	before := containerOf(t, render(t, map[string]any{})["Deployment "+namespace+"/"+release+"-queue-manager"])
	after := containerOf(t, objects["Deployment "+namespace+"/"+release+"-queue-manager"])
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("with a shadow queue-manager is %v, without %v", after, before)
	}
}
