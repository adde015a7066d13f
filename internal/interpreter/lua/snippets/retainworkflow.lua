-- A Workflow's status is part of the object. Who suspends or resumes one on a member keeps his will, unless the template
-- has a word on it; Karmada's own never lets the template resume.
function Retain(desiredObj, observedObj)
  keepApart(desiredObj, observedObj)
  if not object(observedObj) then
    return desiredObj
  end
  if observedObj.status ~= nil then
    desiredObj.status = observedObj.status
  end
  local spec, observed = desiredObj.spec, observedObj.spec
  if object(spec) and object(observed) and spec.suspend == nil then
    spec.suspend = observed.suspend
  end
  return desiredObj
end
