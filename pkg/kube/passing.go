package kube

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// TransientPeriod is the time for which an error may last before it is reported as a failure, if IsTransient is true
// for the error. A manager or webhook that restarts takes some minutes, including the pull of its image.
const TransientPeriod = 10 * time.Minute

// IsTransient reports whether a request failed for a reason that usually passes without a change by the user.
// Such reasons are a conflict, an API server or webhook that restarts or is overloaded, or a used-up quota.
// After a deletion the quota controller of Kubernetes counts the usage late. A reason that persists is a
// failure; the caller measures the time.
func IsTransient(err error) bool {
	if err == nil {
		return false
	}
	switch {
	case apierrors.IsConflict(err),
		apierrors.IsTimeout(err),
		apierrors.IsServerTimeout(err),
		apierrors.IsTooManyRequests(err),
		apierrors.IsServiceUnavailable(err):
		return true
	case errors.Is(err, context.DeadlineExceeded),
		utilnet.IsConnectionRefused(err),
		utilnet.IsConnectionReset(err),
		utilnet.IsProbableEOF(err),
		utilnet.IsTimeout(err):
		return true
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return true
	}
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
