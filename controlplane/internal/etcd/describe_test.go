package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatIsToldOfFailures(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for err, told := range map[error]string{
		&failure{"cannot read Secret etcd-client", apierrors.NewForbidden(secrets, "content", errors.New("content"))}: "cannot read Secret etcd-client: the credentials of the kubeconfig may not do that",
		&failure{"cannot read Secret etcd-client", apierrors.NewNotFound(secrets, "content")}:                         "cannot read Secret etcd-client: it is not there",
		&failure{"cannot read Secret etcd-client", apierrors.NewUnauthorized("content")}:                              "cannot read Secret etcd-client: the cluster does not accept the credentials of the kubeconfig",
		&failure{"cannot remove a member", fmt.Errorf("content: %w", context.DeadlineExceeded)}:                       "cannot remove a member: no answer in time",
		&failure{"cannot remove a member", rpctypes.ErrUnhealthy}:                                                     "cannot remove a member: etcd refuses, for it takes too few of its members for healthy",
		&failure{"cannot remove a member", errors.New("content")}:                                                     "cannot remove a member: the log of the manager says why",
		&failure{doing: "there is no Pod"}:                                                                            "there is no Pod",
		errors.New("content"):                                                                                         "cannot ask etcd: the log of the manager says why",
	} {
		t.Run(told, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Describe(fmt.Errorf("content: %w", err))).To(Equal(told))
		})
	}
}
