"""``python -m tvm_stof``"""

from .cli import main

main()
