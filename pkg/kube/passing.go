package kube

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Passing reports whether a request failed for a reason that usually passes without a change by the user: a conflict,
// an API server or webhook that restarts or is overloaded, or a quota whose usage is not counted again yet after a
// deletion (the quota controller of Kubernetes). A reason that stays becomes a failure by the time that it lasts, which
// is the caller's to measure.
func Passing(err error) bool {
	if err == nil {
		return false
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err):
		return true
	case errors.Is(err, context.DeadlineExceeded), utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err), utilnet.IsTimeout(err):
		return true
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return true
	}
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
