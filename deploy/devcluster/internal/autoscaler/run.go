package autoscaler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selectors "k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// lookAgain is how often pools are looked at that have something to wait for.
	lookAgain = 250 * time.Millisecond
	// retryAfter is when a step that failed is tried again.
	retryAfter = time.Second
)

// Run plays the pools of the instance until ctx is done. Without a pool it does nothing but
// watch for one.
func Run(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the client of the pools: %w", err)
	}
	requests, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the client of requests: %w", err)
	}
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default: // a change is noted already
		}
	}
	pools := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(poolsNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = selectors.OneTermEqualSelector(metav1.ObjectNameField, poolsName).String()
		})).Core().V1().ConfigMaps().Informer()
	asked := dynamicinformer.NewDynamicSharedInformerFactory(requests, 0).ForResource(Requests).Informer()
	for _, informer := range []cache.SharedIndexInformer{pools, asked} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(_, object any) { notify(object) },
		}); err != nil {
			return fmt.Errorf("watching pools and requests: %w", err)
		}
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), pools.HasSynced, asked.HasSynced) {
		return nil
	}
	s := newScaler(client, requests)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-timer.C:
		}
		stored, known, err := pools.GetStore().GetByKey(poolsNamespace + "/" + poolsName)
		if err != nil || !known {
			continue
		}
		waits, err := s.step(ctx, stored.(*corev1.ConfigMap), asked.GetStore().List())
		switch {
		case err != nil && ctx.Err() == nil:
			klog.ErrorS(err, "Playing node pools")
			timer.Reset(retryAfter)
		case waits:
			timer.Reset(lookAgain)
		}
	}
}
