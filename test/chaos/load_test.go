package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
)

func TestRequestsAboveTheLimit(t *testing.T) {
	object := faultproxy.Request{Method: "PATCH", Path: "/apis/g/v1/namespaces/chaos/things/a/status"}
	list := faultproxy.Request{Method: "POST", Path: "/api/v1/namespaces/chaos/events"}
	for situation, tc := range map[string]struct {
		requested map[faultproxy.Request]int
		took      time.Duration
		overdone  []load
	}{
		"at the limit": {map[faultproxy.Request]int{object: mostOfObject, list: mostOfList}, time.Minute, nil},
		"one object above the limit": {
			map[faultproxy.Request]int{object: mostOfObject + 1}, time.Minute, []load{{object, mostOfObject + 1}},
		},
		"a list above the limit": {map[faultproxy.Request]int{list: mostOfList + 1}, time.Minute, []load{{list, mostOfList + 1}}},
		"above the limit in half the time": {
			map[faultproxy.Request]int{object: mostOfObject}, time.Minute / 2, []load{{object, 2 * mostOfObject}},
		},
		"below the limit in a longer time": {map[faultproxy.Request]int{object: mostOfObject + 1}, 2 * time.Minute, nil},
		"a watch that is opened repeatedly": {
			map[faultproxy.Request]int{{Method: "WATCH", Path: "/apis/g/v1/things"}: 1000},
			time.Minute,
			[]load{{faultproxy.Request{Method: "WATCH", Path: "/apis/g/v1/things"}, 1000}},
		},
		"no requests": {nil, time.Minute, nil},
		"many objects, each a few times": {map[faultproxy.Request]int{
			object: 40,
			{Method: "PATCH", Path: "/apis/g/v1/namespaces/chaos/things/b"}: 40,
		}, time.Minute, nil},
	} {
		t.Run(situation, func(t *testing.T) {
			_, overdone := heaviest(tc.requested, tc.took)
			NewWithT(t).Expect(overdone).To(Equal(tc.overdone))
		})
	}
	most, _ := heaviest(map[faultproxy.Request]int{object: 3, list: 5}, time.Minute)
	NewWithT(t).Expect(most).To(Equal(load{list, 5}))
}

func TestListsAndObjects(t *testing.T) {
	g := NewWithT(t)
	for _, path := range []string{
		"/api/v1/secrets", "/api/v1/namespaces/chaos/secrets", "/apis/g/v1/things",
		"/apis/g/v1/namespaces/chaos/things", "/api/v1/namespaces",
	} {
		g.Expect(isList(path)).To(BeTrue(), path)
	}
	for _, path := range []string{
		"/api/v1/namespaces/chaos/secrets/a", "/apis/g/v1/things/a",
		"/apis/g/v1/namespaces/chaos/things/a/status", "/api/v1/namespaces/chaos", "/apis", "/api",
	} {
		g.Expect(isList(path)).To(BeFalse(), path)
	}
}

func TestLargestNumberOfObjectsInAMinute(t *testing.T) {
	g := NewWithT(t)
	f := newFollower(nil)
	f.most["Thing"] = 7
	g.Expect(f.alive("Thing")).To(Equal(7), "they were reconciled before their deletion")
	g.Expect(f.alive("Thing")).To(BeZero())
}
