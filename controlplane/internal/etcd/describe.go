package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// failure is an error of which the first part, what was to be done, is in our own words; without another error it says all.
type failure struct {
	doing string
	err   error
}

func (f *failure) Error() string {
	if f.err == nil {
		return f.doing
	}
	return f.doing + ": " + f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// Describe says in our own words what went wrong: what a cluster answers is not for everybody who reads conditions.
func Describe(err error) string {
	doing := "cannot ask etcd"
	if f := (*failure)(nil); errors.As(err, &f) {
		doing = f.doing
		if f.err == nil {
			return doing
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		return doing + ": the credentials of the kubeconfig may not do that"
	case apierrors.IsUnauthorized(err):
		return doing + ": the cluster does not accept the credentials of the kubeconfig"
	case apierrors.IsNotFound(err):
		return doing + ": it is not there"
	case meta.IsNoMatchError(err):
		return doing + ": the cluster does not know the kind"
	case errors.Is(err, rpctypes.ErrUnhealthy), errors.Is(err, rpctypes.ErrMemberNotEnoughStarted):
		return doing + ": etcd refuses, for it takes too few of its members for healthy"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, rpctypes.ErrTimeout), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return doing + ": no answer in time"
	}
	return doing + ": the log of the manager says why"
}
