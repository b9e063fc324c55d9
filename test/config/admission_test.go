package config_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

// admission is one request to the API server, for the object base with the patch change. With before (also a
// patch of base) the request updates that object. The API server accepts the request unless refused is set,
// which is part of the message for the user.
type admission struct {
	change  string
	before  string
	refused string
}

// admissions are requests for variants of one object, by situation.
type admissions struct {
	base  string
	cases map[string]admission
}

// admissionTables are the tables of all cases, by subject.
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

// objects returns the requested object and the existing one; nil means create.
func (c admission) objects(t *testing.T, base string) (wanted, old map[string]any) {
	t.Helper()
	if c.before != "" {
		old = merge(object(t, base), object(t, c.before))
	}
	return merge(object(t, base), object(t, c.change)), old
}
