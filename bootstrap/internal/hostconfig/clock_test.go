package hostconfig

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/binding"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestClockStepChangesOnlyReports: the clock of the manager may step, and the clocks behind other timestamps
// may be off by hours. Reports may depend on that. Actions must not, and no server is polled in a loop.
func TestClockStepChangesOnlyReports(t *testing.T) {
	for situation, begin := range map[string]func(*testing.T) *world{
		"waits for its image": func(t *testing.T) *world {
			t.Helper()
			w := newWorld(t, values(lab())...)
			w.reconcile()
			return w
		},
		"waits for its host": func(t *testing.T) *world { t.Helper(); return booted(t) },
		"host refused":       func(t *testing.T) *world { t.Helper(); return refusedSince(t, binding.Settling/2) },
		"host approved":      joined,
		"installs":           installing,
		"installed":          installedWithNode,
		"waits for assisted-service to delete": func(t *testing.T) *world {
			t.Helper()
			w := joined(t)
			w.remove(w.config())
			w.remove(read(w, "m", &aiv1beta1.InfraEnv{}))
			return w
		},
	} {
		for _, by := range []time.Duration{-400 * 24 * time.Hour, -26 * time.Hour, -time.Hour, time.Hour, 26 * time.Hour, 400 * 24 * time.Hour} {
			t.Run(situation+" "+by.String(), func(t *testing.T) {
				w := begin(t)
				w.reconcile()
				w.reconcile()
				others := w.others()
				w.clock = w.clock.Add(by)
				for n := range 4 {
					before := w.writes
					after := w.reconcile().RequeueAfter
					w.Expect(after).To(Or(BeZero(), BeNumerically(">=", time.Second)), "the next reconcile")
					if n > 0 {
						w.Expect(w.writes).To(Equal(before), "a changed report is written once")
					}
				}
				w.Expect(w.others()).To(Equal(others))
			})
		}
	}
}

// others returns the objects that the manager manages, except the config itself. The touch of an Agent changes no action
// of assisted-service.
func (w *world) others() []string {
	w.t.Helper()
	var objects []string
	for _, list := range []client.ObjectList{&aiv1beta1.InfraEnvList{}, &aiv1beta1.AgentList{}, &corev1.SecretList{}} {
		w.Expect(w.List(w.t.Context(), list)).To(Succeed())
		w.Expect(meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object) //nolint:forcetypeassert // all are client objects
			annotations := object.GetAnnotations()
			delete(annotations, bootstrapv1.RefreshAnnotation)
			object.SetAnnotations(annotations)
			object.SetResourceVersion("")
			object.SetManagedFields(nil)
			text, err := json.Marshal(object)
			objects = append(objects, string(text))
			return err
		})).To(Succeed())
	}
	return objects
}
