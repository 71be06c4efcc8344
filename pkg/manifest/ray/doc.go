// Package ray reads RayCluster, RayJob and RayService manifests, predicts the
// pods that a KubeRay operator will make of them, and writes into them what
// Muster must set.
//
//	YAML, JSON --> Predict --> identify    name, namespace, annotations
//	                       --> reading     cluster, job or service: the pods that
//	                                       KubeRay makes (cluster.go, job.go, service.go)
//	                       --> bindGang    what ties the pods together (gang.go)
//	                       --> Object      the manifest, its pod sets, its life
//
//	Object, an attempt --> Stamp --> the manifest that the dispatcher creates
//
// It refuses what Muster cannot guarantee, with the place, the value and the
// remedy. Five rules of it are Muster's own:
//
//   - A cluster with the in-tree autoscaler is admitted at its maximum, or with
//     the annotation muster.dev/autoscaling: minimum at its minimum; what it asks
//     for beyond waits at gates until it is admitted by itself: it never outgrows
//     its reservation.
//   - A RayService does not change to a second cluster beside the first: its
//     upgrade strategy is stamped None.
//   - The head of a cluster with GCS fault tolerance keeps room for the pod that
//     cleans Redis up after it.
//   - Labels that hand an object to Kueue are dropped, so that it is not queued
//     twice.
//   - What is stamped is v1, also of a v1alpha1 manifest, which may have no fields
//     that v1alpha1 lacks.
//
// Not predicted, because neither the manifest nor the operator's profile shows
// it: limit ranges and mutating webhooks.
//
// The package is pure. It is not for talking to an API server.
package ray
