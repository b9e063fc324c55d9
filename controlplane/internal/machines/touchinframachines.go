package machines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// CAPM3 (v1.13) watches neither the kubeconfig nor Nodes. Without the kubeconfig it backs off to 1000 s. Once it has read
// the kubeconfig, it reads Nodes every 30 s. Nodes appear long after the kubeconfig, so the kubeconfig alone is no reason
// for a touch.
const (
	// KubeconfigPublishedAnnotation is set on an infrastructure machine that has no Node when the cluster is installed.
	// This provider may not be connected to the cluster, or CAPM3 may have failed to write to the Node.
	KubeconfigPublishedAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-published"
	// NodeSeenAnnotation is set on an infrastructure machine when its Node exists.
	NodeSeenAnnotation = "controlplane.cluster.x-k8s.io/node-seen"
)

// Touch triggers the infrastructure provider once for each dependency of its infra machines that has become
// available.
func (u *Updater) Touch(ctx context.Context, s *scope.Scope) (bool, error) {
	// In parallel, because each request takes time.
	var group errgroup.Group
	for _, machines := range [][]*clusterv1.Machine{s.Found.Machines, s.Workers} {
		for _, m := range machines {
			if m.Spec.ProviderID != "" || !m.DeletionTimestamp.IsZero() {
				continue
			}
			infra, err := kube.InfraMachine(ctx, u.client, m)
			if err != nil {
				return false, errors.Join(err, group.Wait())
			}
			if infra == nil || !metal3.NeedsNode(infra) {
				continue
			}
			touch := missingAnnotations(s, m, infra)
			left := u.writer.Recent.Pending(touchKey(infra), infra.GetResourceVersion())
			switch {
			case len(touch) == 0:
			case left > 0:
				s.Again.In(left)
			default:
				group.Go(func() error { return u.writer.Annotate(ctx, touchKey(infra), infra, touch) })
			}
		}
	}
	return true, group.Wait()
}

// missingAnnotations returns the annotations that an infra machine does not have yet.
func missingAnnotations(s *scope.Scope, m *clusterv1.Machine, infra *unstructured.Unstructured) map[string]*string {
	touch := map[string]*string{}
	if s.AdminKubeconfig != nil && s.Installed() {
		touch[KubeconfigPublishedAnnotation] = ptr.To(shortHash(string(s.AdminKubeconfig.UID)))
	}
	if node := s.NodeOf(m); node != nil {
		touch[NodeSeenAnnotation] = ptr.To(shortHash(string(node.UID)))
	}
	maps.DeleteFunc(touch, func(key string, value *string) bool { return infra.GetAnnotations()[key] == *value })
	return touch
}

func touchKey(infra *unstructured.Unstructured) string {
	return reconcile.Key("touch "+infra.GetKind(), infra)
}

func shortHash(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:4])
}
