package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestCreationOfMachinesIsSpared(t *testing.T) {
	const machine = "/apis/cluster.x-k8s.io/v1beta2/namespaces/chaos/machines/a"
	const config = "/apis/bootstrap.cluster.x-k8s.io/v1beta1/namespaces/chaos/openshiftassistedconfigs/a"
	const infraMachines = "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/chaos/metal3machines"
	const infra = infraMachines + "/a"
	for situation, tc := range map[string]struct {
		method, path string
		content      types.PatchType
		spared       bool
	}{
		"the Machine is created":                  {http.MethodPatch, machine, types.ApplyPatchType, true},
		"its status changes":                      {http.MethodPatch, machine + "/status", types.MergePatchType, false},
		"it is deleted":                           {http.MethodDelete, machine, "", false},
		"its config gets labels":                  {http.MethodPatch, config, types.MergePatchType, true},
		"its infra machine is deleted":            {http.MethodDelete, infra, "", true},
		"its infra machine is read again":         {http.MethodGet, infra, "", true},
		"the infra machines are watched":          {http.MethodGet, infraMachines + "?watch=true", "", false},
		"the infra machines are listed":           {http.MethodGet, infraMachines, "", false},
		"an Event of an infra machine is created": {http.MethodPost, "/api/v1/namespaces/chaos/events", "", false},
	} {
		t.Run(situation, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, tc.path, http.NoBody)
			r.Header.Set("Content-Type", string(tc.content))
			NewWithT(t).Expect(createsForMachine(r)).To(Equal(tc.spared))
		})
	}
}

func TestStatusOfMetal3MachinesIsSpared(t *testing.T) {
	const infra = "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/chaos/metal3machines/a"
	for path, spared := range map[string]bool{
		infra + "/status": true,
		infra:             false,
		"/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/chaos/metal3clusters/a/status": false,
	} {
		NewWithT(t).Expect(writesMetal3MachineStatus(httptest.NewRequest(http.MethodPatch, path, http.NoBody))).To(Equal(spared), path)
	}
}

func TestEachPlaceHasItsOwnSeed(t *testing.T) {
	g := NewWithT(t)
	first, second := &round{plan: plan{seed: 7}}, &round{plan: plan{seed: 8}}
	g.Expect(first.seedOf(toRegistry)).NotTo(Equal(first.seedOf(toService)))
	g.Expect(first.seedOf(toRegistry)).NotTo(Equal(second.seedOf(toRegistry)))
}
