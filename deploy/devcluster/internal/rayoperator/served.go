package rayoperator

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const (
	servedTimeout = 60 * time.Second
	servedPoll    = 50 * time.Millisecond
)

// rayVersion is the group and version in which KubeRay's controllers read all
// of their objects.
const rayVersion = "ray.io/v1"

// rayKinds are the kinds that must be served for the controllers to start.
const rayKinds = 4

// WaitServed waits until the API server's discovery lists all kinds of KubeRay:
// what reads discovery once, when it starts, must not start before.
func WaitServed(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making the discovery client: %w", err)
	}
	seen := 0
	err = wait.PollUntilContextTimeout(ctx, servedPoll, servedTimeout, true, func(context.Context) (bool, error) {
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			return false, nil // Asked again until the time is over.
		}
		seen = countKinds(lists)
		return seen >= rayKinds, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the API server serves %s (%d of %d kinds): %w", rayVersion, seen, rayKinds, err)
	}
	return nil
}

func countKinds(lists []*metav1.APIResourceList) int {
	kinds := make(map[string]bool)
	for _, list := range lists {
		if list.GroupVersion == rayVersion {
			for _, resource := range list.APIResources {
				kinds[resource.Kind] = true
			}
		}
	}
	return len(kinds)
}
