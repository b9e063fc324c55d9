package config_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

// admission is one request to the API server: base with change laid over it. With before, which is laid over base likewise,
// it is an update of that object. It is accepted, unless refused says which message the user gets.
type admission struct {
	change  string
	before  string
	refused string
}

// admissions are requests about variants of one object, by what is special about them.
type admissions struct {
	base  string
	cases map[string]admission
}

// admissionTables are all that is tried, by what it is about.
var admissionTables = map[string]func() admissions{
	"config":                 openshiftAssistedConfigAdmissions,
	"node registration":      nodeRegistrationAdmissions,
	"template of configs":    openshiftAssistedConfigTemplateAdmissions,
	"shape":                  controlPlaneShapeAdmissions,
	"arbiter":                arbiterAdmissions,
	"fencing":                fencingAdmissions,
	"release":                controlPlaneReleaseAdmissions,
	"network":                controlPlaneNetworkAdmissions,
	"settings":               controlPlaneSettingsAdmissions,
	"update":                 controlPlaneUpdateAdmissions,
	"control plane template": controlPlaneTemplateAdmissions,
}

func TestAdmission(t *testing.T) {
	all := mustLoadSchemas(t)
	for about, table := range admissionTables {
		base, cases := table().base, table().cases
		for name, c := range cases {
			t.Run(about+"/"+name, func(t *testing.T) {
				g := NewWithT(t)
				wanted, old := c.objects(t, base)
				if old != nil {
					g.Expect(all.admit(t.Context(), old, nil)).To(Succeed(), "the object before the change")
				}
				err := all.admit(t.Context(), wanted, old)
				if c.refused == "" {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(err).To(MatchError(ContainSubstring(c.refused)))
			})
		}
	}
}

// objects are the one that is asked for, and the one that is there; nil: there is none.
func (c admission) objects(t *testing.T, base string) (wanted, old map[string]any) {
	t.Helper()
	if c.before != "" {
		old = merge(object(t, base), object(t, c.before))
	}
	return merge(object(t, base), object(t, c.change)), old
}
