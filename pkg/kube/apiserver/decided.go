package apiserver

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Decided reports whether the API server has decided about a request that ended with err, for or
// against it, if only that a webhook does not answer: no answer, and one that passes, is none.
func Decided(err error) bool {
	var answered apierrors.APIStatus
	passes := apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
	return err == nil || errors.As(err, &answered) && !passes
}
