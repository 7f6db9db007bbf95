#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make sbom`: the document has the fields of SPDX 2.3, every program with the SHA-256 of its file, every
# library that readelf finds, with the version that dpkg has; the same build gives the same bytes.
. "${top_srcdir:-.}/tests/cli/common.sh"
set -u
for tool in readelf ldconfig; do
    if ! PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null; then
        echo "no $tool: skipped"
        exit 77
    fi
done
build=${draftscope%/*}
checker=$build/tests/cli/check_schema
SOURCE_DATE_EPOCH=1700000000
export SOURCE_DATE_EPOCH
check "sbom.sh" sh "$top/contrib/sbom.sh" "$top" 1.2.3 "$build"
cp said sbom.json
cat >schema <<'END'
{"type": "object", "additionalProperties": false,
 "required": ["spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages",
              "relationships"],
 "properties": {"spdxVersion": {"type": "string"}, "dataLicense": {"type": "string"},
  "SPDXID": {"type": "string"}, "name": {"type": "string"}, "documentNamespace": {"type": "string"},
  "creationInfo": {"type": "object", "required": ["created", "creators"]},
  "packages": {"type": "array", "items": {"type": "object", "additionalProperties": false,
   "required": ["name", "SPDXID", "versionInfo", "downloadLocation", "licenseConcluded", "licenseDeclared",
                "copyrightText"],
   "properties": {"name": {"type": "string"}, "SPDXID": {"type": "string"}, "versionInfo": {"type": "string"},
    "downloadLocation": {"type": "string"}, "filesAnalyzed": {"type": "boolean"},
    "licenseConcluded": {"type": "string"}, "licenseDeclared": {"type": "string"},
    "copyrightText": {"type": "string"}, "sourceInfo": {"type": "string"},
    "checksums": {"type": "array", "items": {"type": "object", "required": ["algorithm", "checksumValue"]}},
    "externalRefs": {"type": "array", "items": {"type": "object",
     "required": ["referenceCategory", "referenceType", "referenceLocator"]}}}}},
  "hasExtractedLicensingInfos": {"type": "array", "items": {"type": "object", "additionalProperties": false,
   "required": ["licenseId", "extractedText"],
   "properties": {"licenseId": {"type": "string"}, "name": {"type": "string"}, "extractedText": {"type": "string"},
    "seeAlsos": {"type": "array", "items": {"type": "string"}}}}},
  "relationships": {"type": "array", "items": {"type": "object", "additionalProperties": false,
   "required": ["spdxElementId", "relationshipType", "relatedSpdxElement"],
   "properties": {"spdxElementId": {"type": "string"}, "relationshipType": {"type": "string"},
    "relatedSpdxElement": {"type": "string"}}}}}}
END
if [ -x "$checker" ]; then check "fields of SPDX" "$checker" schema sbom.json; else skip "fields" "no check_schema"; fi

if grep -q '"spdxVersion": "SPDX-2.3"' sbom.json && grep -q '"created": "2023-11-14T22:13:20Z"' sbom.json; then
    ok
else
    not_ok "version and date: $(head -n 8 sbom.json)"
fi
# A license that is not in SPDX's list has its text.
grep -o 'LicenseRef-[A-Za-z0-9.-]*' sbom.json | sort -u >refs
while IFS= read -r ref; do
    if grep -qF "{\"licenseId\": \"$ref\"" sbom.json; then ok; else not_ok "no text of $ref"; fi
done <refs
# Every id that a relation names is that of a package or of the document, and all ids differ.
grep -o '"\(spdxElementId\|relatedSpdxElement\)": "[^"]*"' sbom.json | sed 's/.*: //' | sort -u >used
grep -o '"SPDXID": "[^"]*"' sbom.json | sed 's/.*: //' | sort >ids
if [ -s used ] && [ -z "$(comm -23 used ids)" ] && [ -z "$(uniq -d ids)" ]; then
    ok
else
    not_ok "ids: $(comm -23 used ids) $(uniq -d ids)"
fi
# Libtool's programs are scripts that run those in .libs where the library is shared.
file=$build/.libs/draftscope
[ -f "$file" ] || file=$build/draftscope
if grep -q "\"checksumValue\": \"$(sha256sum "$file" | cut -c 1-64)\"" sbom.json; then ok; else not_ok "SHA-256"; fi
readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' >needed
while IFS= read -r library; do
    id=SPDXRef-$(echo "$library" | sed 's/[^A-Za-z0-9.-]/-/g')
    if grep -qF "\"spdxElementId\": \"SPDXRef-draftscope\", \"relationshipType\": \"DYNAMIC_LINK\", \"relatedSpdxElement\": \"$id\"" \
        sbom.json; then ok; else not_ok "$library is not in the document"; fi
done <needed
if grep -q libjansson needed; then ok; else not_ok "readelf found no libraries"; fi

if command -v dpkg-query >/dev/null && number=$(dpkg-query -W -f '${Version}' libjansson4 2>/dev/null); then
    if grep -F '"name": "libjansson.so.4"' sbom.json | grep -F "\"versionInfo\": \"$number\"" |
        grep -F '"licenseDeclared": "MIT"' | grep -qF "pkg:deb/debian/libjansson4@"; then
        ok
    else
        not_ok "version and license of libjansson.so.4, of package libjansson4 $number"
    fi
    unlicensed=$(grep -o '"name": "lib.*"licenseDeclared": "NOASSERTION"' sbom.json | cut -d '"' -f 4)
    if [ -z "$unlicensed" ]; then ok; else not_ok "libraries without a license: $unlicensed"; fi
else
    skip "versions of libraries" "no dpkg, or Jansson is not of a package"
fi

check "again" sh "$top/contrib/sbom.sh" "$top" 1.2.3 "$build"
if cmp -s said sbom.json; then ok; else not_ok "two runs differ"; fi
mkdir empty
if sh "$top/contrib/sbom.sh" "$top" 1.2.3 empty >out 2>err; then not_ok "an empty folder passes"; else
    if grep -q 'nothing is built' err; then ok; else not_ok "an empty folder: $(cat err)"; fi
fi
summary
