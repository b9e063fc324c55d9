package registration

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

func TestMayIgnore(t *testing.T) {
	for situation, tc := range map[string]struct {
		state    facts.InstallationState
		observed assisted.Installation
		may      bool
	}{
		"not registered yet":  {may: true},
		"insufficient, ready": {observed: assisted.Installation{Registered: true, AcceptsHosts: true}, may: true},
		"installing": {
			state: facts.InstallationState{Begun: true}, observed: assisted.Installation{Registered: true, Started: true},
		},
		"installing, status of service lost": {state: facts.InstallationState{Begun: true}},
		"adding hosts": {
			state: facts.InstallationState{Begun: true}, observed: assisted.Installation{Registered: true, AcceptsHosts: true}, may: true,
		},
		"a state that is not known": {observed: assisted.Installation{Registered: true}},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(MayIgnore(tc.state, tc.observed)).To(Equal(tc.may))
		})
	}
}

func TestKeptIgnored(t *testing.T) {
	const cluster, hosts = assisted.IgnoredClusterValidationsAnnotation, assisted.IgnoredHostValidationsAnnotation
	for situation, tc := range map[string]struct{ wanted, registered, kept map[string]string }{
		"none":                          {},
		"added":                         {wanted: map[string]string{hosts: "a", "other": "b"}, kept: map[string]string{"other": "b"}},
		"changed":                       {map[string]string{hosts: "a"}, map[string]string{hosts: "b"}, map[string]string{hosts: "b"}},
		"withdrawn":                     {nil, map[string]string{hosts: "b"}, map[string]string{hosts: "b"}},
		"withdrawn from another client": {nil, map[string]string{cluster: "b"}, nil},
		"empty, and another is withdrawn": {
			map[string]string{"other": "b"}, map[string]string{hosts: ""}, map[string]string{"other": "b", hosts: ""},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			owns := func(path ...string) bool { return path[2] == hosts }
			kept := KeptIgnored(&metav1.ObjectMeta{Annotations: tc.wanted}, &metav1.ObjectMeta{Annotations: tc.registered}, owns)
			NewWithT(t).Expect(kept).To(Equal(tc.kept))
		})
	}
}
