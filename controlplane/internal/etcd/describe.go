package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// failure is an error whose action is described in our own words. Without another error the description is
// complete.
type failure struct {
	action string
	err    error
}

func (f *failure) Error() string {
	if f.err == nil {
		return f.action
	}
	return f.action + ": " + f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// Describe describes an error in our own words. The responses of a cluster must not reach all readers of
// conditions.
func Describe(err error) string {
	doing := "cannot query etcd"
	if f := (*failure)(nil); errors.As(err, &f) {
		doing = f.action
		if f.err == nil {
			return doing
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		return doing + ": the credentials of the kubeconfig lack the permission"
	case apierrors.IsUnauthorized(err):
		return doing + ": the cluster does not accept the credentials of the kubeconfig"
	case apierrors.IsNotFound(err):
		return doing + ": it does not exist"
	case meta.IsNoMatchError(err):
		return doing + ": the cluster does not have this kind"
	case errors.Is(err, rpctypes.ErrUnhealthy), errors.Is(err, rpctypes.ErrMemberNotEnoughStarted):
		return doing + ": etcd refuses, because too few of its members are healthy"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, rpctypes.ErrTimeout), apierrors.IsTimeout(err),
		apierrors.IsServerTimeout(err):
		return doing + ": no answer in time"
	}
	return doing + ": see the log of the manager"
}
