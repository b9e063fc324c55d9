package kube

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestChanges(t *testing.T) {
	otherType := Changes(func(before, after *corev1.Secret) bool { return before.Type != after.Type })
	opaque, tls := &corev1.Secret{Type: corev1.SecretTypeOpaque}, &corev1.Secret{Type: corev1.SecretTypeTLS}
	for situation, tc := range map[string]struct {
		before, after client.Object
		passes        bool
	}{
		"no field that is read differs": {opaque, opaque.DeepCopy(), false},
		"a field that is read differs":  {opaque, tls, true},
		"objects of another type pass":  {&corev1.ConfigMap{}, &corev1.ConfigMap{}, true},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(otherType.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})).To(Equal(tc.passes))
			g.Expect(otherType.Create(event.CreateEvent{Object: tc.after})).To(BeTrue())
			g.Expect(otherType.Delete(event.DeleteEvent{Object: tc.before})).To(BeTrue())
		})
	}
}
