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

func TestDescribe(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for err, want := range map[error]string{
		&failure{"cannot read Secret etcd-client", apierrors.NewForbidden(secrets, "content",
			errors.New("content"))}: "cannot read Secret etcd-client: the credentials of the kubeconfig lack the permission",
		&failure{"cannot read Secret etcd-client", apierrors.NewNotFound(secrets,
			"content")}: "cannot read Secret etcd-client: it does not exist",
		&failure{
			"cannot read Secret etcd-client",
			apierrors.NewUnauthorized("content"),
		}: "cannot read Secret etcd-client: the cluster does not accept " +
			"the credentials of the kubeconfig",
		&failure{
			"cannot remove a member",
			fmt.Errorf("content: %w", context.DeadlineExceeded),
		}: "cannot remove a member: no answer in time",
		&failure{
			"cannot remove a member",
			rpctypes.ErrUnhealthy,
		}: "cannot remove a member: etcd refuses, because too " +
			"few of its members are healthy",
		&failure{
			"cannot remove a member",
			errors.New("content"),
		}: "cannot remove a member: see the log of the manager",
		&failure{action: "no Pod found"}: "no Pod found",
		errors.New("content"): "cannot query " +
			"etcd: see the log of the manager",
	} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(Describe(fmt.Errorf("content: %w", err))).To(Equal(want))
		})
	}
}
