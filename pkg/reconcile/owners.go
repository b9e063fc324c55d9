package reconcile

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Owners writes objects whose owner references the API server may refuse. The API server of OpenShift refuses
// them if the client may not delete the object.
type Owners struct {
	refusals *Backoff
}

// NewOwners returns an Owners without refused objects.
func NewOwners(refusals *Backoff) *Owners { return &Owners{refusals: refusals} }

// Left returns the delay after which refused owner references of an object are written again; zero if they
// may be written.
func (o *Owners) Left(found client.Object) time.Duration { return o.refusals.Left(ownersKey(found)) }

// Write calls write, which writes wanted over found; found is nil if the object does not exist. If the API
// server refuses the owner references of wanted, Write replaces them by those of found. It then calls write
// again, so that all other fields are written. In this case refused is the delay after which the owner
// references are written again; otherwise it is zero.
func (o *Owners) Write(wanted, found client.Object, write func() error) (refused time.Duration, err error) {
	if kube.IsNil(found) {
		return 0, write()
	}
	id, left := ownersKey(found), o.Left(found)
	if kube.HasOwners(found, wanted.GetOwnerReferences()) || left == 0 {
		if err := write(); !kube.OwnersRefused(err) {
			if err == nil {
				o.refusals.Reset(id)
			}
			return 0, err
		}
		left = o.refusals.Record(id)
	}
	wanted.SetOwnerReferences(found.GetOwnerReferences())
	return left, write()
}

func ownersKey(obj client.Object) string { return Key("owners "+string(obj.GetUID()), obj) }

// OwnersRefusedMessage returns the message of a condition that the owner references of an object were
// refused, and the right that permits them.
func OwnersRefusedMessage(kind, name, right string) string {
	return fmt.Sprintf(
		"%s %s keeps its owner references: the API server refuses others of a client that may not delete the object, as OpenShift does. %s. "+
			"Until then clusterctl move leaves %[1]s %[2]s behind, and it is not deleted together with its owner",
		kind,
		name,
		right,
	)
}

// HubRights is the action for Secrets whose owner references were refused.
const HubRights = "Apply openshift-hub.yaml of this provider's release, or set openshiftHub in the Helm chart (docs/operations/acm-hub.md)"
