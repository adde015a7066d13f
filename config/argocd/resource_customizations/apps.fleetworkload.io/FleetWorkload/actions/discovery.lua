-- What can be done with a FleetWorkload at the moment.
local suspended = obj.spec.suspend == true
local migration = (obj.status or {}).migration or {}
local change = (obj.status or {}).change or {}
local pods = ((obj.spec.template.spec or {}).template or {})
local under_way = migration.phase ~= nil and obj.spec.backend ~= migration.from
return {
  ["suspend"] = {["disabled"] = suspended},
  ["resume"] = {["disabled"] = not suspended},
  ["approve"] = {["disabled"] = migration.approval == nil and change.approval == nil},
  ["migrate-back"] = {["disabled"] = not under_way},
  ["restart"] = {["disabled"] = pods.spec == nil},
}
